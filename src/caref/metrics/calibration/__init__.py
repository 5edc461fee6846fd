"""Whether confidences mean what they say: errors of calibration, proper scores, ranking, temperature scaling.

Functions of arrays are in `binned`, `smooth`, `classwise`, `scores`, `selective`, `null` and `temperature`;
`scored` makes the arrays from predictions. The metrics, one a file, are `calibration_error`, `nll`, `auroc`
and `temperature_scaling`.
"""
