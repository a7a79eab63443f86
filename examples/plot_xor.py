"""
XOR, and why pairs cannot see it
================================
"""

import matplotlib.pyplot as plt

plt.plot([1, 2])
