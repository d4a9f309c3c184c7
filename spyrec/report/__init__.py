"""Everything that is known of a bundle as one object, and what shows it: a page, exports, text."""
