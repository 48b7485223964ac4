"""Reports as pages: one HTML file with its data, its charts and the library that draws them."""
