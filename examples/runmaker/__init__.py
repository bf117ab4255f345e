"""Records scripted agents on the pages of this folder, with truth checked against the pages' own state."""
