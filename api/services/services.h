/// The set of services that the endpoints are written against.
#pragma once

#include "api/services/answer_service.h"
#include "api/services/audit_service.h"
#include "api/services/deployment_service.h"
#include "api/services/info_service.h"
#include "api/services/job_service.h"
#include "api/services/key_service.h"
#include "api/services/model_service.h"
#include "api/services/package_service.h"
#include "api/services/store_service.h"
#include "api/services/tuning_service.h"
#include "api/services/worker_service.h"

namespace tensormill::services {

/// Borrowed pointers that outlive every request. All are set but `keys`, which is null while keys are off.
struct Services {
  InfoService* info = nullptr;
  TargetService* targets = nullptr;
  HealthService* health = nullptr;
  ModelService* models = nullptr;
  JobService* jobs = nullptr;
  PackageService* packages = nullptr;
  DeploymentService* deployments = nullptr;
  StoreService* store = nullptr;
  TuningService* tuning = nullptr;
  KeyService* keys = nullptr;
  AnswerService* answers = nullptr;
  AuditService* audit = nullptr;
  WorkerService* workers = nullptr;
};

}  // namespace tensormill::services
