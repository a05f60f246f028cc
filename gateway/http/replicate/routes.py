"""All controllers of the family."""

from gateway.http.replicate.files import ReplicateFilesController
from gateway.http.replicate.models import ReplicateModelsController
from gateway.http.replicate.predictions import PredictionsController
from gateway.http.replicate.secret import ReplicateSecretController

REPLICATE_ROUTES = (
    PredictionsController,
    ReplicateModelsController,
    ReplicateFilesController,
    ReplicateSecretController,
)
