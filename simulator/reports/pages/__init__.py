"""Reports as pages: one HTML file that holds its data, its charts and the library that draws them."""
