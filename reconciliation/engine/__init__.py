"""Spark itself: its settings, its Java, and what it needs beside both."""
