"""The parts of the page, each with one idea. They return HTML; all text from the realm is escaped."""
