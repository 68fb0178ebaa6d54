"""Names beyond Triton's: the same modules as beside this one."""
from .. import language_extra, libdevice, libshmem_device  # noqa: F401
