"""The counter that every answer passes: calls, their queue, events and the journal."""
