package blob

import (
	"net/http"

	"kaz/internal/localazure/behaviour"
)

// refuse returns an error as the client sees it.
func refuse(status int, code, format string, args ...any) *behaviour.Error {
	return behaviour.Refusal(status, code, format, args...)
}

func noContainer() error {
	return refuse(http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
}

func noBlob() error {
	return refuse(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
}
