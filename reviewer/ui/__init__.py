"""The page and its routes: wiring only."""
