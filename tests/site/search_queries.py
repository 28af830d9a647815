"""What readers type into the search, and the pages of the book one of which is on a good result.

The queries of `REVIEWED` are those that a first-time reader of the site tried in November 2026, most in vain. Those of
`UNSEEN` and their pages were written down before the index that they test was ranked for the first time, by somebody
who knew the titles of the chapters and of their sections. Neither list is to be fitted to what the search finds: mend
the search, or give a chapter the keyword that its authors forgot.
"""

REVIEWED = {
    "needle in a haystack": {"needle_in_a_long_prompt"},
    "temperature scaling": {"temperature_and_length", "threshold_in_temperature"},
    "phase transition": {"needle_in_a_long_prompt", "threshold_in_temperature"},
    "attention sink": {"temperature_and_length", "real_heads", "trained_at_other_lengths"},
    "length generalization": {"trained_at_other_lengths"},
    "how much data do I need": {"finite_samples"},
    "citation": {"index"},
    "Boursier": {"index", "references"},
    "training dynamics": {"icl_infinite", "trajectory_stability", "single_location_training"},
    "MiniLM": {"real_heads"},
    "prerequisites": {"index"},
    "BERT": {"real_heads"},
    "long context": {"needle_in_a_long_prompt", "trained_at_other_lengths", "temperature_and_length"},
    "linear attention": {"gaussian_limit"},
    "temperature": {"temperature_and_length", "threshold_in_temperature"},
    "Theorem 4.3": {"statements"},
    "sub-Gaussian": {"concentration", "measures", "sharp_rates", "notation"},
    "random energy model": {"needle_in_a_long_prompt", "exact_finite_prompt", "threshold_in_temperature"},
}
UNSEEN = {
    "why is softmax attention linear": {"gaussian_limit"},
    "how long must a prompt be": {"concentration", "icl_finite"},
    "heavy tails": {"trajectory_stability", "sharp_rates", "concentration"},
    "multi-head attention": {"opposite_heads", "worth_of_heads", "which_kernel"},
    "diffusion model": {"mixture_denoising"},
    "approximate message passing": {"message_passing"},
    "golden ratio": {"sharp_rates"},
    "inverse temperature": {"threshold_in_temperature", "temperature_and_length"},
    "clustering": {"mixture_discrimination", "mixture_denoising"},
    "real transformer": {"real_heads"},
    "convergence of gradient flow": {"icl_infinite", "trajectory_stability", "mixture_discrimination"},
    "bug in the published code": {"published_experiment", "differences"},
    "local minima": {"second_minima"},
    "ridge regression": {"finite_samples", "published_experiment"},
    "Zdeborová": {"index", "references"},
    "all-or-nothing": {"needle_in_a_long_prompt"},
    "condition number": {"preconditioned_training", "icl_infinite"},
    "reproduce a figure": {"rerun"},
    "open problems": {"what_holds"},
    "classification": {"mixture_discrimination"},
}
