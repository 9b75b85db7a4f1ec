"""Safetensors files whose description and tensors carry SHA-256 digests, read strictly: traces and attention maps.

A digest finds damage (a bit that flipped on a disk or on its way), not tampering: who can write into a file can write
its digests as well.
"""
