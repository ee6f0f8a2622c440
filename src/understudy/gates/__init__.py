"""Gates: evidence in, verdict out, pure."""
