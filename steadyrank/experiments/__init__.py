"""Whole experiments: a recipe run end to end, studies that compare several systems on the same lists, and matrices of runs.

`recipes` runs one recipe, `study` scores and compares systems and writes the folder a report is made of, `demo` is the main job, `matrix`
runs methods x students x seeds x settings.
"""
