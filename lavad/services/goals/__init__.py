"""Goals in time of service classes that are missed: CONTROL_ACTION of lsb.serviceclasses."""
