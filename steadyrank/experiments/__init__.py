"""Whole experiments: a recipe run end to end, and studies that compare several systems on the same lists.

`recipes` runs one recipe, `study` scores and compares systems and writes the folder a report is made of, `demo` is the main job.
"""
