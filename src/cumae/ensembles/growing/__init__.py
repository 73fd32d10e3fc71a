"""Growing: many small models trained in one loop."""
