"""What is installed, and modules that are loaded on first use.

Reading order: `installed`, `extras`, `package_files`, `lazy`, `lazy_modules` (modules
that make their names when they are asked for), `sys_modules` and `module_names` (what a
module has, by its text).
"""
