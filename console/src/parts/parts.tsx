import {
  ActionIcon,
  Alert,
  Button,
  Center,
  Code,
  CopyButton,
  Group,
  Loader,
  Modal,
  Paper,
  Stack,
  Text,
  Title,
  Tooltip,
} from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { ApiError } from '../api/client.ts';
import { Icon } from './icons.tsx';

/** The message of the service and the request id. */
export function Refusal({ error }: { error: Error | null | undefined }) {
  if (!error) return null;
  const requestId = error instanceof ApiError ? error.requestId : '';
  return (
    <Alert color="red" variant="light" role="alert" title={error.message} className="wrap">
      {requestId && (
        <Text size="xs" c="dimmed">
          {error instanceof ApiError && error.code} · request {requestId}
        </Text>
      )}
    </Alert>
  );
}

export function Copy({ value, label = 'Copy' }: { value: string; label?: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : label}>
          <ActionIcon variant="subtle" color={copied ? 'teal' : 'gray'} onClick={copy} aria-label={label}>
            <Icon name={copied ? 'check' : 'copy'} />
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

/** Text to copy: a command, an address, code. */
export function Snippet({ text, label }: { text: string; label?: string }) {
  return (
    <div className="snippet">
      <Code block tabIndex={0} aria-label={label}>
        {text}
      </Code>
      <div className="snippet-copy">
        <Copy value={text} label={label ? `Copy ${label}` : 'Copy'} />
      </div>
    </div>
  );
}

/** The content of an empty list: an explanation, and the command that creates the first entry. */
export function Empty({ title, children, command }: { title: string; children?: ReactNode; command?: string }) {
  return (
    <Paper p="xl" withBorder className="dashed">
      <Stack align="center" gap="sm" maw={720} mx="auto">
        <Title order={2} size="h4">
          {title}
        </Title>
        {children && (
          <Text c="dimmed" ta="center" component="div">
            {children}
          </Text>
        )}
        {command && (
          <div className="full">
            <Snippet text={command} label="the command" />
          </div>
        )}
      </Stack>
    </Paper>
  );
}

export function Waiting() {
  return (
    <Center p="xl">
      <Loader size="sm" aria-label="Loading" />
    </Center>
  );
}

const colours: Record<string, string> = {
  live: 'teal',
  standby: 'blue',
  starting: 'yellow',
  stopping: 'orange',
  stopped: 'gray',
  failed: 'red',
  running: 'teal',
  succeeded: 'teal',
  success: 'teal',
  authenticated: 'teal',
  'needs auth': 'yellow',
  'in progress': 'yellow',
  available: 'teal',
  'signed in': 'teal',
  'needs a login': 'yellow',
  in_progress: 'yellow',
  queued: 'yellow',
  ready: 'teal',
  degraded: 'yellow',
  unavailable: 'red',
  active: 'teal',
  enabled: 'teal',
};

/** A list has fifty of them, so it is a plain element. */
export function State({ of: state = 'unknown' }: { of: string | undefined }) {
  const colour = colours[state] ?? 'gray';
  const style = {
    background: `var(--mantine-color-${colour}-light)`,
    color: `var(--mantine-color-${colour}-light-color)`,
  };
  return (
    <span className="label" style={style}>
      {state}
    </span>
  );
}

export function Screen({ title, actions, children }: { title: ReactNode; actions?: ReactNode; children: ReactNode }) {
  return (
    <Stack gap="lg">
      <Group justify="space-between" wrap="wrap" gap="sm">
        <Title order={1} size="h3" className="wrap">
          {title}
        </Title>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}

/** A part of a screen. */
export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Stack gap="xs" component="section">
      <Title order={2} size="h5">
        {title}
      </Title>
      {children}
    </Stack>
  );
}

/** A button for an action that cannot be undone. It asks for confirmation and lists the consequences. */
export function Destroy(props: {
  label: string;
  title: string;
  /** The consequences. */
  ends: ReactNode;
  act: () => Promise<unknown>;
  size?: 'xs' | 'sm';
  subtle?: boolean;
}) {
  const [open, setOpen] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const close = () => {
    setOpen(false);
    setError(null);
  };
  const confirm = async () => {
    setBusy(true);
    try {
      await props.act();
      close();
    } catch (failure) {
      setError(failure as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button
        color="red"
        variant={props.subtle ? 'subtle' : 'light'}
        size={props.size ?? 'sm'}
        onClick={() => setOpen(true)}
      >
        {props.label}
      </Button>
      <Modal opened={open} onClose={close} title={props.title} centered>
        <Stack>
          <Text component="div" size="sm">
            {props.ends}
          </Text>
          <Refusal error={error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close} data-autofocus>
              Keep
            </Button>
            <Button color="red" loading={busy} onClick={() => void confirm()}>
              {props.label}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
