"""What a Keras model has, whichever Keras made it: its variables, optimizer and layers.

Whoever reads or feeds a rate, counts steps, saves or restores asks this room at that
moment, since a callback may compile the model again in mid-fit.

Read in this order: `optimizers` (what all families of optimizers are asked) and
`v1_optimizers`, `variables` (the eager variables and their names) and `structure`
(layers, outputs, and how many steps a call makes).
"""
