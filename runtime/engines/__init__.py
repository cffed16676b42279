"""Engines that are packages of their own: how they are installed, and what today's torch needs around them."""
