"""What made a hidden state what it is: contributions and layer updates, exactly; rollout; ablations, measured."""
