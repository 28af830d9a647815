"""How the threshold of softmax depends on its temperature: a mean-field limit next to exact averages."""
