import { Button, Group, NumberInput, Text, TextInput } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api, ask, askPage } from '../api/client.ts';
import { useAct, useLive } from '../api/live.ts';
import type { Project, ProjectLimits } from '../api/schema.gen.d.ts';
import { Dialog, Form, useText } from '../parts/form.tsx';
import { Listing, type Column } from '../parts/listing.tsx';
import { Destroy, Empty, Refusal, Screen, State, Waiting } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';

const route = getRouteApi('/projects');
/** Each row asks for its limits, so a page has few. */
const PAGE = 20;
const SELDOM_MS = 15_000;

/** Projects and their limits. */
export function Projects() {
  const { query, offset = 0 } = route.useSearch();
  const navigate = route.useNavigate();
  const projects = useLive(['projects', 'page', query, offset], () =>
    askPage(api.GET('/org/projects', { params: { query: { limit: PAGE, offset, ...(query && { query }) } } })),
  );
  return (
    <Screen title="Projects" actions={<NewProject />}>
      <Nodes />
      <Listing
        label="Projects"
        page={projects}
        columns={columns}
        idOf={({ id }) => id}
        offset={offset}
        size={PAGE}
        turn={(next) => void navigate({ search: (old) => ({ ...old, offset: next || undefined }) })}
        empty={
          <Empty title="No project">A project keeps sessions, profiles and keys apart from those of others.</Empty>
        }
      />
    </Screen>
  );
}

/** The limits of all projects. */
function Nodes() {
  const limits = useLive(['projects', 'all'], () => ask(api.GET('/org/limits')), { every: SELDOM_MS });
  if (!limits.data) return <Refusal error={limits.error} />;
  const { max_concurrent_sessions: most, default_project_max_concurrent_sessions: each } = limits.data;
  return (
    <Group gap="xs">
      <Text size="sm">
        All nodes together run at most {most} sessions. A project without a limit of its own may have{' '}
        {each === null ? 'all of them' : `${each} at the same time`}.
      </Text>
      <Dialog label="Edit" title="Sessions of each project" variant="subtle">
        {(close) => <EachFields each={each} close={close} />}
      </Dialog>
    </Group>
  );
}

/** The value of a limit field: empty means no limit, which is 0 in the API. */
const shown = (limit: number | null) => limit ?? '';
const sent = (typed: number | string) => Number(typed || 0);

function EachFields({ each, close }: { each: number | null; close: () => void }) {
  const [most, setMost] = useState<number | string>(shown(each));
  const save = useAct(
    () => ask(api.PATCH('/org/limits', { body: { default_project_max_concurrent_sessions: sent(most) } })),
    close,
  );
  return (
    <Form label="Save" act={save} send={() => save.mutate(undefined)}>
      <NumberInput
        label="Sessions at the same time"
        description="For projects without a limit of their own. Empty: no limit."
        min={0}
        max={1_000_000}
        value={most}
        onChange={setMost}
        data-autofocus
      />
    </Form>
  );
}

const limitsOf = (id: string) => ask(api.GET('/org/projects/{id}/limits', { params: { path: { id } } }));
const useLimits = (id: string) => useLive(['projects', 'limits', id], () => limitsOf(id), { every: SELDOM_MS });

function Limit({ id, of }: { id: string; of: 'max_concurrent_sessions' | 'max_concurrent_invocations' }) {
  const limits = useLimits(id);
  return limits.data ? (limits.data[of] ?? 'no limit') : '–';
}

const columns: Column<Project>[] = [
  { name: 'Project', cell: ({ name }) => <bdi className="clip">{name}</bdi> },
  { name: 'Status', cell: ({ status }) => <State of={status} /> },
  { name: 'Sessions', wide: true, cell: ({ id }) => <Limit id={id} of="max_concurrent_sessions" /> },
  { name: 'Invocations', wide: true, cell: ({ id }) => <Limit id={id} of="max_concurrent_invocations" /> },
  { name: 'Made', wide: true, cell: ({ created_at }) => <Time at={created_at} /> },
  { name: '', cell: (project) => <Acts project={project} /> },
];

function Acts({ project }: { project: Project }) {
  const at = { params: { path: { id: project.id } } };
  const archived = project.status === 'archived';
  const restore = useAct(() => ask(api.PATCH('/org/projects/{id}', { ...at, body: { status: 'active' } })));
  return (
    <>
      <Group gap={4} justify="flex-end">
        <Dialog label="Edit" title={`Edit ${project.name}`} variant="light">
          {(close) => <Edit project={project} close={close} />}
        </Dialog>
        {archived ? (
          <Button size="xs" variant="subtle" loading={restore.isPending} onClick={() => restore.mutate(undefined)}>
            Activate
          </Button>
        ) : (
          <Destroy
            label="Archive"
            size="xs"
            subtle
            title={`Archive ${project.name}?`}
            ends="Its sessions end and its requests are refused. What it has stays, and it can be activated again."
            act={() => ask(api.PATCH('/org/projects/{id}', { ...at, body: { status: 'archived' } }))}
          />
        )}
        <Destroy
          label="Delete"
          size="xs"
          subtle
          title={`Delete ${project.name}?`}
          ends="Keys that are bound to it end with it. A project that still has something is not deleted."
          act={() => ask(api.DELETE('/org/projects/{id}', at))}
        />
      </Group>
      <Refusal error={restore.error} />
    </>
  );
}

const NewProject = () => <Dialog label="New project">{(close) => <NameFields close={close} />}</Dialog>;

function NameFields({ close }: { close: () => void }) {
  const name = useText();
  const make = useAct(() => ask(api.POST('/org/projects', { body: { name: name.text } })), close);
  return (
    <Form label="Make the project" act={make} send={() => make.mutate(undefined)}>
      <TextInput label="Name" {...name.input} required maxLength={255} data-autofocus />
    </Form>
  );
}

/** The fields show the current limits, so the form waits for them. */
function Edit({ project, close }: { project: Project; close: () => void }) {
  const limits = useLimits(project.id);
  if (limits.isPending) return <Waiting />;
  if (!limits.data) return <Refusal error={limits.error} />;
  return <EditFields project={project} limits={limits.data} close={close} />;
}

function EditFields({ project, limits, close }: { project: Project; limits: ProjectLimits; close: () => void }) {
  const at = { params: { path: { id: project.id } } };
  const name = useText(project.name);
  const [sessions, setSessions] = useState<number | string>(shown(limits.max_concurrent_sessions));
  const [invocations, setInvocations] = useState<number | string>(shown(limits.max_concurrent_invocations));
  const save = useAct(async () => {
    const body = { max_concurrent_sessions: sent(sessions), max_concurrent_invocations: sent(invocations) };
    await ask(api.PATCH('/org/projects/{id}/limits', { ...at, body }));
    if (name.text !== project.name) await ask(api.PATCH('/org/projects/{id}', { ...at, body: { name: name.text } }));
  }, close);
  const limit = { min: 0, max: 1_000_000, description: 'Empty: no limit of its own' };
  return (
    <Form label="Save" act={save} send={() => save.mutate(undefined)}>
      <TextInput label="Name" {...name.input} required maxLength={255} data-autofocus />
      <NumberInput label="Sessions at the same time" {...limit} value={sessions} onChange={setSessions} />
      <NumberInput label="Invocations at the same time" {...limit} value={invocations} onChange={setInvocations} />
    </Form>
  );
}
