"""HTTP calls that another thread can cut short at any moment, whatever they wait on."""
