"""Sweeps: the same trials night after night, from one file, with nobody watching.

A *night* is one execution of a sweep, whenever it is started. It is made of *cells*: one research session each, for
one task, one state of the code and one version of the data.
"""
