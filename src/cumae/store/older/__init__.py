"""Files of older formats, which are read once and written anew."""
