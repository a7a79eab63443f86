"""The page on which one conditions with the mouse, and the same thing in a notebook."""
