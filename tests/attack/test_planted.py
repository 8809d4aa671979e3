"""People are planted in sixty files and more: each is found, and files of the same makers without them are not accused."""
