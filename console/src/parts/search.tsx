import { TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useRouter } from '@tanstack/react-router';
import { useState } from 'react';
import { Icon } from './icons.tsx';

/** A field that narrows a list down. It waits for a pause in the typing, so that a word is one request. */
export function Search(props: {
  label: string;
  placeholder: string;
  value: string;
  change: (value: string) => void;
  width?: number;
}) {
  const [text, setText] = useState(props.value);
  const router = useRouter();
  // If the user leaves the screen during the pause, the search must not navigate back.
  const later = useDebouncedCallback((value: string, path: string) => {
    if (router.latestLocation.pathname === path) props.change(value);
  }, 250);
  return (
    <TextInput
      aria-label={props.label}
      placeholder={props.placeholder}
      leftSection={<Icon name="search" />}
      value={text}
      maxLength={1024}
      w={{ base: '100%', sm: props.width ?? 260 }}
      onChange={(event) => {
        setText(event.currentTarget.value);
        later(event.currentTarget.value, router.latestLocation.pathname);
      }}
    />
  );
}
