"""Tables, sessions and migrations of the reviewer's database."""
