-- A project keeps a bounded number of audit entries (org/audit-bound.ts). The index finds its oldest entries, and a project's page of the log.
create index audit_log_project on audit_log (project_id, id);
