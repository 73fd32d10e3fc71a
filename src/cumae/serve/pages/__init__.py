"""Pages for people: the facts that programs get as JSON, without anything from outside."""
