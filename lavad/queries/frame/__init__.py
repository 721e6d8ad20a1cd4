"""What every listing needs: the request, the view it is answered from, columns, times and units. Imports no other room."""
