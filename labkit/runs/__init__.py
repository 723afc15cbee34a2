"""Run the word count on real Spark with planned crashes: options, drivers, evidence, verdict and pages."""
