"""Results in notebooks: short HTML, frames of pandas or polars, figures of matplotlib; a module per kind of result."""
