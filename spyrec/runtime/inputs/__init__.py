"""The arrays that runs are given and give: held against what a bundle takes, drawn, read from files and written."""
