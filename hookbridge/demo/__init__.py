"""The main job: a digits classifier trained in both loops by one list of guests."""
