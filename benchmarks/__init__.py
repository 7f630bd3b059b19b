"""Speed and memory of the engine, side by side with PyTorch. `python -m benchmarks` runs it all; see README.md.

Reading order: options, ours, theirs, baseline; worker, side; report; then the benchmarks: step, generation, memory,
data, growth, imports.
"""
