"""What a recording is, and how far two recordings are apart.

Reading order: `array_norms`, `recording_files`, `recording_writer`;
`variable_matching`, `measures`, `differences`.
"""
