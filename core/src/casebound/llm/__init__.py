"""Model providers: the contract, the limits, the attempts, and the stage that all conversations share."""
