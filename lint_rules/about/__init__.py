"""What several rules want to know of a file beyond names and loops."""
