"""Generated code of the protocol between agent and collector; see the .proto files beside it."""
