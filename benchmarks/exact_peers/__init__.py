"""What `bench_exact.py` needs: instances, and other packages in environments of their own."""
