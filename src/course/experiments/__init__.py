"""What the chapters compare: one file a chapter, a list EXPERIMENTS each. `src.course.runs` trains and stores them."""
