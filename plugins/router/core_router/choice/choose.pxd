import cython

from core_router.servers.server_model cimport ServerModel
from core_router.servers.table cimport Route


@cython.locals(
    count=Py_ssize_t, at=Py_ssize_t, other=Py_ssize_t, first=ServerModel, second=ServerModel, one=double, another=double
)
cpdef ServerModel choose(tuple candidates, tuple tried, double now_s)
cpdef ServerModel choose_on(Route route, tuple tried, double now_s)
