"""What every listing needs: the request, the view it is answered from, columns and formats. Imports no other room."""
