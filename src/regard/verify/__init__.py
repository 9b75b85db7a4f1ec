"""Does what regard says of this model hold on this machine?"""
