"""What a script is, from `ast` alone: shared by migration and lint, never imports torch, libcst or the user's code."""
