"""The findings as balance sheet, verdict, summary and page."""
