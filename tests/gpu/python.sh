# The Python package with torch on a GPU, where python3 has torch and the package is installed or in the build.
folder=$(dirname "$(command -v ditron)")/python
[ -d "$folder" ] && export PYTHONPATH=$folder${PYTHONPATH:+:$PYTHONPATH}
if ! python3 -c 'import torch, ditron; assert torch.cuda.is_available()' 2>why; then
  echo "not tested: $(tail -n 1 why)"
  exit 0
fi
python3 -u "$0/python_torch.py" "${DEVICE#cuda:}"
